-- fake: make a generation that stands for no slot, of a request that goes on waiting, and return what its payload is made of.
-- No row comes back when the request stopped waiting, or is being deleted. The lock is the one its foreign key takes at the
-- end anyway, and against deletion alone: whoever takes the request meanwhile is not disturbed.
-- Raw because it is one statement. Served by the primary key.
WITH request AS (
    SELECT id, n, is_chat, models, created, prompt, params, messages, chat_extras, max_length, max_context_length
      FROM waiting_prompts
     WHERE id = %(request_id)s
       AND n > 0
       AND active
       AND NOT faulted
       AND expiry > %(now)s
       FOR KEY SHARE SKIP LOCKED
),
made AS (
    INSERT INTO processing_gens (
        id, request_id, worker_id, model, job_ttl, created, deadline, fake,
        assigned_model, assigned_max_context_length, assigned_max_length
    )
    SELECT %(id)s, id, %(worker_id)s, %(model)s, %(lease_seconds)s, %(now)s, %(deadline)s, true,
           %(assigned_model)s, %(max_context_length)s, %(max_length)s
      FROM request
)
SELECT id AS request_id,
       n AS waiting,
       1 AS taken,
       is_chat,
       models,
       created,
       CASE WHEN is_chat THEN NULL ELSE prompt END AS prompt,
       params::text AS params,
       messages::text AS messages,
       chat_extras::text AS extras,
       max_length,
       max_context_length
  FROM request
