-- backlog: overdue work of each beat task, each count bounded. One row.
-- Raw for the bounded counts. Served by processing_gens_pending, waiting_prompts_expiry and holds_to_lapse.
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
       ) AS overdue_holds
