-- claim: take one slot of a chat request; no row comes back when another pop was faster or the request ended meanwhile.
-- Candidates were read without locks; this statement alone decides. Served by the primary key.
-- Returns what the job's payload is made of, so that nothing has to be read again.
WITH waiting AS (
    SELECT id
      FROM waiting_prompts
     WHERE id = %(request_id)s
       AND is_chat
       AND n > 0
       AND active
       AND NOT faulted
       AND expiry > %(now)s
       FOR NO KEY UPDATE
)
UPDATE waiting_prompts
   SET n = waiting_prompts.n - 1,
       expiry = GREATEST(waiting_prompts.expiry, %(expiry)s)
  FROM waiting
 WHERE waiting_prompts.id = waiting.id
RETURNING waiting_prompts.id AS request_id,
          waiting_prompts.n AS waiting,
          waiting_prompts.created,
          waiting_prompts.params::text AS params,
          waiting_prompts.messages::text AS messages,
          waiting_prompts.max_length,
          waiting_prompts.max_context_length
