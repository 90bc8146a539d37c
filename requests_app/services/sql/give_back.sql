-- give_back: fault pending generations and return their slots to the queue, together.
-- A cancelled or faulted request gets no slot back. Returns the generations this call faulted; those that were stored,
-- faulted or (with lapsed_at) renewed meanwhile are not among them. With each comes its request, and whether kudos may be
-- held for it still though it was cancelled. Raw because it is one state change over four tables.
-- The requests are locked first, in id order (lock order); a generation's own conditions are judged again on its newest
-- version after any wait. Served by the primary keys.
WITH request AS MATERIALIZED (
    SELECT id,
           user_id,
           cancelled_at IS NOT NULL AND upfront_kudos IS NOT NULL AS may_end_hold
      FROM waiting_prompts
     WHERE id = ANY(%(request_ids)s::uuid[])
     ORDER BY id
       FOR NO KEY UPDATE
),
faulted AS (
    UPDATE processing_gens
       SET faulted = true,
           finished_at = %(now)s
      FROM request
     WHERE processing_gens.id = ANY(%(generation_ids)s::uuid[])
       AND processing_gens.request_id = request.id
       AND processing_gens.generation IS NULL
       AND NOT processing_gens.faulted
       AND (%(lapsed_at)s::timestamptz IS NULL OR processing_gens.deadline <= %(lapsed_at)s)
 RETURNING processing_gens.id, processing_gens.request_id, processing_gens.worker_id, processing_gens.fake
),
restarted AS (
    UPDATE waiting_prompts
       SET n = waiting_prompts.n + slots.count
      FROM (
               SELECT request_id, count(*) AS count
                 FROM faulted
                WHERE NOT fake
                GROUP BY request_id
           ) AS slots
     WHERE waiting_prompts.id = slots.request_id
       AND waiting_prompts.cancelled_at IS NULL
       AND NOT waiting_prompts.faulted
 RETURNING waiting_prompts.id, waiting_prompts.models, waiting_prompts.is_chat, waiting_prompts.feature_mask,
           waiting_prompts.order_key, waiting_prompts.created, waiting_prompts.max_length,
           waiting_prompts.max_context_length, waiting_prompts.chat_tools_temperature, waiting_prompts.user_id
),
queued AS (
    INSERT INTO queue_rows (
        request_id, model, is_chat, feature_mask, order_key, created, max_length, max_context_length, tools_temperature,
        user_id
    )
    SELECT id, unnest(CASE WHEN cardinality(models) = 0 THEN '{""}' ELSE models END), is_chat, feature_mask, order_key, created, max_length, max_context_length,
           chat_tools_temperature, user_id
      FROM restarted
        ON CONFLICT (request_id, model) DO NOTHING
),
-- Jobs given up within an hour of the first count together; one too many puts the worker into maintenance, and the count
-- begins anew. The sum stands here again and again because only the row itself is in its newest version after a wait.
counted AS (
    UPDATE workers
       SET aborted_jobs = CASE
               WHEN dropped.count + CASE WHEN workers.aborts_since > %(hour_ago)s THEN workers.aborted_jobs ELSE 0 END
                    > %(most_aborts)s THEN 0
               ELSE dropped.count + CASE WHEN workers.aborts_since > %(hour_ago)s THEN workers.aborted_jobs ELSE 0 END
           END,
           aborts_since = CASE WHEN workers.aborts_since > %(hour_ago)s THEN workers.aborts_since ELSE %(now)s END,
           uncompleted_jobs = workers.uncompleted_jobs + dropped.count,
           maintenance = workers.maintenance
                      OR dropped.count + CASE WHEN workers.aborts_since > %(hour_ago)s THEN workers.aborted_jobs ELSE 0 END
                         > %(most_aborts)s,
           maintenance_message = CASE
               WHEN dropped.count + CASE WHEN workers.aborts_since > %(hour_ago)s THEN workers.aborted_jobs ELSE 0 END
                    > %(most_aborts)s THEN %(maintenance_message)s
               ELSE workers.maintenance_message
           END,
           suspicions = workers.suspicions + (
               dropped.count + CASE WHEN workers.aborts_since > %(hour_ago)s THEN workers.aborted_jobs ELSE 0 END
               > %(most_aborts)s
           )::integer
      FROM (
               SELECT worker_id, count(*) AS count
                 FROM faulted
                GROUP BY worker_id
           ) AS dropped
     WHERE workers.id = dropped.worker_id
)
SELECT faulted.id AS generation_id,
       request.id AS request_id,
       request.user_id,
       request.may_end_hold
  FROM faulted
  JOIN request ON request.id = faulted.request_id
