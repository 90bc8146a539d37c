-- backlog: overdue work of each beat task, each count bounded. One row.
-- Of finished generations only the oldest are looked at, in the order of their ids: they have no index on the time.
-- Raw for the bounded counts. Served by processing_gens_pending, waiting_prompts_expiry, holds_to_lapse, the primary key of
-- finished_generations, shared_keys_expires_at with waiting_prompts_shared_key, and api_keys_revoked_at.
SELECT (
           SELECT count(*)
             FROM (
                      SELECT 1
                        FROM processing_gens
                       WHERE generation IS NULL
                         AND NOT faulted
                         AND deadline <= %(now)s
                       LIMIT %(bound)s
                  ) AS lapsed
       ) AS lapsed_leases,
       (
           SELECT count(*)
             FROM (
                      SELECT 1
                        FROM waiting_prompts
                       WHERE expiry <= %(now)s
                       LIMIT %(bound)s
                  ) AS expired
       ) AS expired_requests,
       (
           SELECT count(*)
             FROM (
                      SELECT 1
                        FROM holds
                       WHERE resolved_at IS NULL
                         AND expires_at IS NOT NULL
                         AND expires_at <= %(now)s
                       LIMIT %(bound)s
                  ) AS overdue
       ) AS overdue_holds,
       (
           SELECT count(*)
             FROM (
                      SELECT finished_at
                        FROM finished_generations
                       ORDER BY id
                       LIMIT %(bound)s
                  ) AS oldest
            WHERE finished_at <= %(finished_before)s
       ) AS finished_generations,
       (
           SELECT count(*)
             FROM (
                      SELECT 1
                        FROM shared_keys
                       WHERE expires_at <= %(keys_ended_before)s
                         AND NOT EXISTS (
                                 SELECT 1
                                   FROM waiting_prompts
                                  WHERE shared_key_id = shared_keys.id
                             )
                       LIMIT %(bound)s
                  ) AS ended
       ) AS expired_keys,
       (
           SELECT count(*)
             FROM (
                      SELECT 1
                        FROM api_keys
                       WHERE revoked_at <= %(keys_ended_before)s
                         AND user_id <> 0
                       LIMIT %(bound)s
                  ) AS ended
       ) AS revoked_keys
