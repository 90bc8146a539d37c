-- store_reply: claim a pending generation and store its reply, what it is charged, the worker's count and speed, and what
-- statistics count of it, together.
-- Returns a row when this submit won; none when another one, a fault or a cancel was faster.
-- Raw because it is one compare-and-set over three rows. The request is locked first (lock order); the generation's own
-- condition is judged again on its newest version after any wait. Served by the primary keys.
WITH request AS (
    SELECT id, is_chat, max_length, cancelled_at
      FROM waiting_prompts
     WHERE id = %(request_id)s
       FOR NO KEY UPDATE
),
stored AS (
    UPDATE processing_gens
       SET generation = %(content)s,
           state = %(state)s,
           seed = %(seed)s,
           gen_metadata = %(metadata)s,
           message = %(message)s,
           finish_reason = %(finish_reason)s,
           native_finish_reason = %(native_finish_reason)s,
           prompt_tokens = %(prompt_tokens)s,
           completion_tokens = %(completion_tokens)s,
           reasoning_tokens = %(reasoning_tokens)s,
           charge_basis = %(charge_basis)s,
           kudos = %(reward)s,
           finished_at = %(now)s
      FROM request
     WHERE processing_gens.id = %(generation_id)s
       AND processing_gens.request_id = request.id
       AND processing_gens.generation IS NULL
       AND NOT processing_gens.faulted
 RETURNING processing_gens.id, processing_gens.request_id, processing_gens.worker_id, processing_gens.model,
           processing_gens.created
),
finished AS (
    INSERT INTO finished_generations (
        finished_at, model, is_chat, outcome, max_length, written_tokens, milliseconds
    )
    SELECT %(now)s,
           stored.model,
           request.is_chat,
           CASE WHEN request.cancelled_at IS NULL THEN 'ok' ELSE 'cancelled' END,
           request.max_length,
           CASE WHEN request.cancelled_at IS NULL THEN %(written_tokens)s::integer ELSE 0 END,
           greatest(extract(epoch FROM %(now)s::timestamptz - stored.created) * 1000, 0)::bigint
      FROM stored
      JOIN request ON request.id = stored.request_id
),
charged AS (
    UPDATE waiting_prompts
       SET consumed_kudos = waiting_prompts.consumed_kudos + %(charge)s,
           expiry = GREATEST(waiting_prompts.expiry, %(expiry)s)
      FROM stored
     WHERE waiting_prompts.id = stored.request_id
),
credited AS (
    UPDATE workers
       SET requests_fulfilled = workers.requests_fulfilled + 1,
           suspicions = workers.suspicions + %(is_suspicious)s::integer,
           paused = workers.paused
                 OR (%(is_suspicious)s AND NOT %(is_owner_trusted)s AND workers.suspicions + 1 >= %(most_suspicions)s),
           speed_samples = (ARRAY[%(speed_sample)s::double precision] || workers.speed_samples)[1:%(speed_samples)s],
           speed = (
               SELECT coalesce(nullif(avg(sample), 0), 1)
                 FROM unnest(
                          (ARRAY[%(speed_sample)s::double precision] || workers.speed_samples)[1:%(speed_samples)s]
                      ) AS sample
           )
      FROM stored
     WHERE workers.id = stored.worker_id
)
SELECT id
  FROM stored
