-- waiting_slots: the slots a user has waiting, those of a request just written included. One row.
-- What is stored and not activated waits for nothing yet: of several, as many are activated as there is room for.
-- For the anonymous user, who is many people, only requests that share a model count, when the request names any.
-- A statement of its own, after the payer's account was locked: it sees what others committed until then.
-- Raw for the array operator. Served by the index on waiting_prompts.user_id.
SELECT coalesce(sum(n), 0)::integer AS count
  FROM waiting_prompts
 WHERE user_id = %(user_id)s
   AND active
   AND n > 0
   AND NOT faulted
   AND (%(any_models)s OR models && %(models)s::varchar[])
