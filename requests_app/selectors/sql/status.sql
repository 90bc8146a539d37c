-- status: a request's flags, counts, place in the queue and fleet, from one snapshot. No row for another family's id.
-- Read before the generations, which can then only be newer: a status that says done never lacks one that makes it so.
-- Raw for the bounded count and the lateral questions; of the two fleets only the family's own is read. Served by primary
-- keys, waiting_prompts_in_order, workers_chat_model_online and workers_prompt_online.
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
             FROM (
                      SELECT threads
                        FROM workers
                       WHERE %(is_chat)s
                         AND accepts_chat_jobs
                         AND NOT maintenance
                         AND NOT paused
                         AND chat_model_id = ANY(request.models)
                         AND last_check_in >= %(online_since)s
                         AND chat_features @> request.chat_required_features
                         AND chat_max_length >= request.max_length
                         AND chat_max_context_length >= request.max_context_length
                       UNION ALL
                      SELECT workers.threads
                        FROM workers
                        JOIN users AS owner ON owner.id = workers.user_id
                       WHERE NOT %(is_chat)s
                         AND workers.accepts_prompt_jobs
                         AND NOT workers.maintenance
                         AND NOT workers.paused
                         AND workers.last_check_in >= %(online_since)s
                         AND (
                                 cardinality(request.models) = 0
                              OR CASE
                                     WHEN cardinality(request.models) <= %(few_models)s
                                     THEN workers.models && request.models
                                     ELSE EXISTS (
                                              SELECT 1
                                                FROM unnest(workers.models) AS served (model)
                                                JOIN unnest(request.models) AS wanted (model)
                                                  ON wanted.model = served.model
                                          )
                                 END
                             )
                         AND workers.max_length >= request.max_length
                         AND workers.max_context_length >= request.max_context_length
                         AND (owner.is_trusted OR NOT request.trusted_workers)
                         AND (
                                 cardinality(request.workers) = 0
                              OR (workers.id = ANY(request.workers)) <> request.worker_blacklist
                             )
                  ) AS able
       ) AS fleet
 WHERE request.id = %(request_id)s
   AND request.is_chat = %(is_chat)s
