-- text_fleet: the online text workers of the requested models, or of any when none is named, in one row: the largest
-- context among those that serve (null when nobody does), each pair of limits (length, context) of those the request lets
-- serve it, and which of the workers it names exist.
-- Raw for the filtered aggregates in one round trip. Served by the partial index workers_prompt_online.
SELECT max(workers.max_context_length) AS largest_context,
       coalesce(
           array_agg(DISTINCT ARRAY[workers.max_length, workers.max_context_length]) FILTER (
               WHERE (owner.is_trusted OR NOT %(trusted_workers)s)
                 AND (
                         cardinality(%(workers)s::uuid[]) = 0
                      OR (workers.id = ANY(%(workers)s::uuid[])) <> %(worker_blacklist)s
                     )
           ),
           '{}'
       ) AS able_limits,
       ARRAY(SELECT id FROM workers WHERE id = ANY(%(workers)s::uuid[])) AS known_workers
  FROM workers
  JOIN users AS owner ON owner.id = workers.user_id
 WHERE workers.accepts_prompt_jobs
   AND NOT workers.maintenance
   AND workers.last_check_in >= %(online_since)s
   AND (
           cardinality(%(models)s::varchar[]) = 0
        OR workers.models && %(models)s::varchar[]
       )
