-- chat_fleet: the online chat workers of the requested models, in one row: how many serve and the largest limits among them
-- (null when nobody serves), which of the models in doubt one of them declared, what each of those the request lets serve it
-- offers (length, context, features; equal offers once), and which of the workers it names exist.
-- Raw for the filtered aggregates in one round trip. Served by the partial index workers_chat_model_online.
SELECT coalesce(
           array_agg(DISTINCT worker.chat_model_id) FILTER (
               WHERE worker.chat_model_id = ANY(%(models_in_doubt)s::varchar[])
           ),
           '{}'
       ) AS declared_models,
       count(*) FILTER (WHERE NOT worker.maintenance) AS serving_workers,
       max(worker.chat_max_length) FILTER (WHERE NOT worker.maintenance) AS largest_length,
       max(worker.chat_max_context_length) FILTER (WHERE NOT worker.maintenance) AS largest_context,
       coalesce(
           jsonb_agg(
               DISTINCT jsonb_build_array(
                   worker.chat_max_length, worker.chat_max_context_length, to_jsonb(worker.chat_features)
               )
           ) FILTER (
               WHERE NOT worker.maintenance
                 AND NOT worker.paused
                 AND (owner.is_trusted OR NOT %(trusted_workers)s)
                 AND (
                         cardinality(%(workers)s::uuid[]) = 0
                      OR (worker.id = ANY(%(workers)s::uuid[])) <> %(worker_blacklist)s
                     )
           ),
           '[]'
       )::text AS offers,
       ARRAY(SELECT id FROM workers WHERE id = ANY(%(workers)s::uuid[])) AS known_workers
  FROM workers AS worker
  JOIN users AS owner ON owner.id = worker.user_id
 WHERE worker.accepts_chat_jobs
   AND worker.chat_model_id = ANY(%(models)s::varchar[])
   AND worker.last_check_in >= %(online_since)s
