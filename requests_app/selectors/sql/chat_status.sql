-- chat_status: a chat request's flags, counts, place in the queue and fleet, from one snapshot. No row for another family's id.
-- Read before the generations, which can then only be newer: a status that says done never lacks one that makes it so.
-- Raw for the bounded count and the lateral questions. Served by primary keys, waiting_prompts_in_order and
-- workers_chat_model_online.
SELECT request.jobs,
       request.n AS waiting,
       request.faulted AS is_faulted,
       request.cancelled_at IS NOT NULL AS is_cancelled,
       counts.in_flight,
       counts.stored,
       counts.restarted,
       request.created,
       request.consumed_kudos,
       request.context_adjustments::text AS context_adjustments,
       request.chat_fault_reason AS fault_reason,
       request.chat_fault_rc AS fault_rc,
       CASE WHEN request.n = 0 OR request.faulted THEN 0 ELSE ahead.count + 1 END AS queue_position,
       fleet.workers AS eligible_workers,
       fleet.threads AS eligible_worker_threads
  FROM waiting_prompts AS request
 CROSS JOIN LATERAL (
           SELECT count(*) FILTER (WHERE generation IS NULL AND NOT faulted) AS in_flight,
                  count(*) FILTER (WHERE generation IS NOT NULL AND NOT faulted) AS stored,
                  count(*) FILTER (WHERE faulted) AS restarted
             FROM processing_gens
            WHERE request_id = request.id
              AND NOT fake
       ) AS counts
 CROSS JOIN LATERAL (
           SELECT count(*) AS count
             FROM (
                      SELECT 1
                        FROM waiting_prompts AS other
                       WHERE other.active
                         AND NOT other.faulted
                         AND other.n > 0
                         AND other.order_key >= request.order_key
                         AND (
                                 other.order_key > request.order_key
                              OR (other.created, other.id) < (request.created, request.id)
                             )
                       LIMIT CASE WHEN request.n = 0 OR request.faulted THEN 0 ELSE %(exact_positions)s END
                  ) AS better
       ) AS ahead
 CROSS JOIN LATERAL (
           SELECT count(*) AS workers,
                  coalesce(sum(threads), 0) AS threads
             FROM workers
            WHERE accepts_chat_jobs
              AND NOT maintenance
              AND chat_model_id = ANY(request.models)
              AND last_check_in >= %(online_since)s
              AND chat_features @> request.chat_required_features
              AND chat_max_length >= request.max_length
              AND chat_max_context_length >= request.max_context_length
       ) AS fleet
 WHERE request.id = %(request_id)s
   AND request.is_chat
