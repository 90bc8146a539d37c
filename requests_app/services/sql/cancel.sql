-- cancel: take what still waits of a request out of the queue; generations in flight go on.
-- Returns a row when this call claimed the cancellation: not for a request that is faulted, cancelled or complete.
-- Raw because it is one state change. Served by the primary key.
WITH cancelled AS (
    UPDATE waiting_prompts
       SET n = 0,
           cancelled_at = %(now)s
     WHERE id = %(request_id)s
       AND NOT faulted
       AND cancelled_at IS NULL
       AND (
               n > 0
            OR EXISTS (
                   SELECT 1
                     FROM processing_gens
                    WHERE request_id = %(request_id)s
                      AND generation IS NULL
                      AND NOT faulted
                      AND NOT fake
               )
           )
 RETURNING id
),
dequeued AS (
    DELETE FROM queue_rows
     USING cancelled
     WHERE queue_rows.request_id = cancelled.id
)
SELECT id
  FROM cancelled
