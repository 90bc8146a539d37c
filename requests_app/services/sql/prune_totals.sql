-- prune_totals: delete a batch of totals of minutes and hours that no span needs any more; those of all time stay.
-- The caller holds the lock of the one writer, so a row's place in the table does not change under the statement.
-- Raw for the bounded deletion. Served by the primary key.
DELETE FROM generation_totals
 WHERE ctid = ANY(ARRAY(
           SELECT place
             FROM (
                      SELECT ctid AS place
                        FROM generation_totals
                       WHERE period = 'minute'
                         AND starts_at < %(minutes_since)s
                       UNION ALL
                      SELECT ctid
                        FROM generation_totals
                       WHERE period = 'hour'
                         AND starts_at < %(hours_since)s
                  ) AS stale
            LIMIT %(limit)s
       ))
