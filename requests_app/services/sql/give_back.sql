-- give_back: fault pending generations, and return their slots to the queue or fault their requests, together.
-- A request with more faulted generations than %(most_faults)s is faulted itself and offers nothing more; a cancelled or
-- faulted one gets no slot back. Returns the generations this call faulted; those that were stored, faulted or (with
-- lapsed_at) renewed meanwhile are not among them. With each comes its request as this left it. The queue rows of a request
-- that was faulted are taken out by dequeue.sql, whose snapshot is newer. Raw because it is one state change over four tables.
-- The requests are locked first, then the workers, each in id order (lock order), and written from what the lock returned,
-- their newest versions; a generation's own conditions are judged again on its newest version after any wait. Served by the
-- primary keys.
WITH request AS MATERIALIZED (
    SELECT id, is_chat, max_length, n, faulted, faulted_jobs, cancelled_at, upfront_kudos, chat_fault_reason,
           chat_fault_rc
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
 RETURNING processing_gens.id, processing_gens.request_id, processing_gens.worker_id, processing_gens.fake,
           processing_gens.chat_refusal_rc, processing_gens.model, processing_gens.created
),
finished AS (
    INSERT INTO finished_generations (
        finished_at, model, is_chat, outcome, max_length, written_tokens, milliseconds
    )
    SELECT %(now)s,
           faulted.model,
           request.is_chat,
           'faulted',
           request.max_length,
           0,
           greatest(extract(epoch FROM %(now)s::timestamptz - faulted.created) * 1000, 0)::bigint
      FROM faulted
      JOIN request ON request.id = faulted.request_id
     WHERE NOT faulted.fake
),
verdict AS (
    SELECT request.id,
           request.n,
           request.faulted_jobs + slots.count AS faulted_jobs,
           slots.count,
           NOT request.faulted
               AND request.cancelled_at IS NULL
               AND request.faulted_jobs + slots.count > %(most_faults)s AS ends_request,
           NOT request.faulted
               AND request.cancelled_at IS NULL
               AND request.faulted_jobs + slots.count <= %(most_faults)s AS restarts
      FROM request
      JOIN (
               SELECT request_id, count(*) AS count
                 FROM faulted
                WHERE NOT fake
                GROUP BY request_id
           ) AS slots ON slots.request_id = request.id
),
restarted AS (
    UPDATE waiting_prompts
       SET n = CASE WHEN verdict.restarts THEN verdict.n + verdict.count ELSE 0 END,
           faulted = waiting_prompts.faulted OR verdict.ends_request,
           faulted_jobs = verdict.faulted_jobs
      FROM verdict
     WHERE waiting_prompts.id = verdict.id
 RETURNING verdict.restarts, waiting_prompts.id, waiting_prompts.models, waiting_prompts.is_chat,
           waiting_prompts.feature_mask, waiting_prompts.order_key, waiting_prompts.created, waiting_prompts.max_length,
           waiting_prompts.max_context_length, waiting_prompts.chat_tools_temperature, waiting_prompts.user_id
),
queued AS (
    INSERT INTO queue_rows (
        request_id, model, is_chat, feature_mask, order_key, created, max_length, max_context_length, tools_temperature,
        user_id
    )
    SELECT id, unnest(CASE WHEN cardinality(models) = 0 THEN '{""}' ELSE models END), is_chat, feature_mask, order_key,
           created, max_length, max_context_length, chat_tools_temperature, user_id
      FROM restarted
     WHERE restarts
        ON CONFLICT (request_id, model) DO NOTHING
),
-- Jobs given up within an hour of the first count together; one too many puts the worker into maintenance, and the count
-- begins anew. It is suspicious too, and enough suspicions pause the worker of an owner who is not trusted. A job whose
-- reply broke a strict request's contract is the model's failure and counts apart (RFL-15..19).
worker AS MATERIALIZED (
    SELECT id, user_id, suspicions,
           coalesce(aborts_since > %(hour_ago)s, false) AS counts_on,
           CASE WHEN aborts_since > %(hour_ago)s THEN aborted_jobs ELSE 0 END AS earlier_aborts
      FROM workers
     WHERE id = ANY(ARRAY(SELECT worker_id FROM faulted)::uuid[])
     ORDER BY id
       FOR NO KEY UPDATE
),
given_up AS (
    SELECT worker.id,
           worker.counts_on,
           ended.nonconformant,
           ended.dropped,
           worker.earlier_aborts + ended.dropped AS aborts,
           worker.earlier_aborts + ended.dropped > %(most_aborts)s AS is_too_much,
           worker.suspicions + 1 >= %(most_suspicions)s AND NOT users.is_trusted AS may_pause
      FROM worker
      JOIN users ON users.id = worker.user_id
      JOIN (
               SELECT worker_id,
                      count(*) FILTER (WHERE chat_refusal_rc = %(nonconformant_rc)s) AS nonconformant,
                      count(*) FILTER (WHERE chat_refusal_rc IS DISTINCT FROM %(nonconformant_rc)s) AS dropped
                 FROM faulted
                GROUP BY worker_id
           ) AS ended ON ended.worker_id = worker.id
),
counted AS (
    UPDATE workers
       SET nonconformant_replies = workers.nonconformant_replies + given_up.nonconformant,
           uncompleted_jobs = workers.uncompleted_jobs + given_up.dropped,
           aborted_jobs = CASE
               WHEN given_up.dropped = 0 THEN workers.aborted_jobs
               WHEN given_up.is_too_much THEN 0
               ELSE given_up.aborts
           END,
           aborts_since = CASE
               WHEN given_up.dropped = 0 OR given_up.counts_on THEN workers.aborts_since
               ELSE %(now)s
           END,
           maintenance = workers.maintenance OR given_up.is_too_much,
           maintenance_message = CASE
               WHEN given_up.is_too_much THEN %(maintenance_message)s
               ELSE workers.maintenance_message
           END,
           suspicions = workers.suspicions + given_up.is_too_much::integer,
           paused = workers.paused OR (given_up.is_too_much AND given_up.may_pause)
      FROM given_up
     WHERE workers.id = given_up.id
)
SELECT faulted.id AS generation_id,
       request.id AS request_id,
       request.is_chat,
       request.upfront_kudos IS NOT NULL AS may_end_hold,
       request.cancelled_at IS NOT NULL AS is_cancelled,
       coalesce(verdict.ends_request, false) AS ends_request,
       request.chat_fault_reason AS fault_reason,
       request.chat_fault_rc AS fault_rc
  FROM faulted
  JOIN request ON request.id = faulted.request_id
  LEFT JOIN verdict ON verdict.id = request.id
