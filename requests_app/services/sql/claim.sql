-- claim: take slots of the first of some requests that still has one: one of a chat request, up to %(amount)s of a text
-- request; no row comes back when other pops took them all or they ended meanwhile. Candidates were read without locks; this
-- statement alone decides, and returns how many it took.
-- `free` passes over a request that another transaction changes at this moment, so that pops which see the same head of the
-- queue take one request each instead of waiting in line for one. What is passed over may have slots left: only when nothing
-- else was free does `awaited` wait for it. Both judge a row again on its newest version. A row that was waited for in vain
-- stays locked until the commit while the next one is tried, in queue order and not in id order: the deadlock that this
-- makes possible with a batch is undone by PostgreSQL and retried.
-- `n` is written from the row as it was locked: the UPDATE starts out from the statement's snapshot, and where slots came
-- back since then its first draft would have less than none left, which the table's check refuses at once.
-- Raw for the locks and their order. Returns all that the payload is made of. Served by the primary key.
WITH free AS MATERIALIZED (
    SELECT id, n, least(n, CASE WHEN is_chat THEN 1 ELSE %(amount)s END) AS taken
      FROM waiting_prompts
     WHERE id = ANY(%(request_ids)s::uuid[])
       AND n > 0
       AND active
       AND NOT faulted
       AND expiry > %(now)s
     ORDER BY array_position(%(request_ids)s::uuid[], id)
     LIMIT 1
       FOR NO KEY UPDATE SKIP LOCKED
),
awaited AS MATERIALIZED (
    SELECT id, n, least(n, CASE WHEN is_chat THEN 1 ELSE %(amount)s END) AS taken
      FROM waiting_prompts
     WHERE NOT EXISTS (SELECT 1 FROM free)
       AND id = ANY(%(request_ids)s::uuid[])
       AND n > 0
       AND active
       AND NOT faulted
       AND expiry > %(now)s
     ORDER BY array_position(%(request_ids)s::uuid[], id)
     LIMIT 1
       FOR NO KEY UPDATE
),
waiting AS (
    SELECT id, n, taken
      FROM free
     UNION ALL
    SELECT id, n, taken
      FROM awaited
)
UPDATE waiting_prompts
   SET n = waiting.n - waiting.taken,
       expiry = GREATEST(waiting_prompts.expiry, %(expiry)s)
  FROM waiting
 WHERE waiting_prompts.id = waiting.id
RETURNING waiting_prompts.id AS request_id,
          waiting_prompts.n AS waiting,
          waiting.taken,
          waiting_prompts.is_chat,
          waiting_prompts.models,
          waiting_prompts.created,
          CASE WHEN waiting_prompts.is_chat THEN NULL ELSE waiting_prompts.prompt END AS prompt,
          waiting_prompts.params::text AS params,
          waiting_prompts.messages::text AS messages,
          waiting_prompts.chat_extras::text AS extras,
          waiting_prompts.max_length,
          waiting_prompts.max_context_length
