-- text_fleet: the online text workers of the requested models, or of any when none is named, in one row: the largest
-- context among those that serve (null when nobody does), what each of those the request lets serve it offers (length,
-- context, no features; equal offers once), and which of the workers it names exist.
-- What two long lists share is asked by a hash of one of them: `&&` compares each with each, which takes seconds for a
-- request of 200 models and thousands of workers of as many.
-- Raw for the filtered aggregates in one round trip. Served by the partial index workers_prompt_online.
SELECT max(workers.max_context_length) AS largest_context,
       coalesce(
           jsonb_agg(DISTINCT jsonb_build_array(workers.max_length, workers.max_context_length, '[]'::jsonb)) FILTER (
               WHERE NOT workers.paused
                 AND (owner.is_trusted OR NOT %(trusted_workers)s)
                 AND (
                         cardinality(%(workers)s::uuid[]) = 0
                      OR (workers.id = ANY(%(workers)s::uuid[])) <> %(worker_blacklist)s
                     )
           ),
           '[]'
       )::text AS offers,
       ARRAY(SELECT id FROM workers WHERE id = ANY(%(workers)s::uuid[])) AS known_workers
  FROM workers
  JOIN users AS owner ON owner.id = workers.user_id
 WHERE workers.accepts_prompt_jobs
   AND NOT workers.maintenance
   AND workers.last_check_in >= %(online_since)s
   AND (
           cardinality(%(models)s::varchar[]) = 0
        OR CASE
               WHEN cardinality(%(models)s::varchar[]) <= %(few_models)s THEN workers.models && %(models)s::varchar[]
               ELSE EXISTS (
                        SELECT 1
                          FROM unnest(workers.models) AS served (model)
                         WHERE served.model = ANY(%(models)s::varchar[])
                    )
           END
       )
