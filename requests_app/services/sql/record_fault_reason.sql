-- record_fault_reason: write on a request why a worker gives one of its pending generations up, unless a reply of the same
-- generation was refused: that message says more. A fake generation is nobody's try.
-- Raw because it is one statement under two locks, the request's first (lock order); the generation's conditions are judged on
-- its newest version. Served by the primary keys.
WITH request AS (
    SELECT id
      FROM waiting_prompts
     WHERE id = %(request_id)s
       FOR NO KEY UPDATE
),
pending AS (
    SELECT generation.request_id
      FROM processing_gens AS generation, request
     WHERE generation.id = %(generation_id)s
       AND generation.request_id = request.id
       AND generation.generation IS NULL
       AND NOT generation.faulted
       AND NOT generation.fake
       AND generation.chat_refusal_rc IS NULL
       FOR NO KEY UPDATE OF generation
)
UPDATE waiting_prompts
   SET chat_fault_reason = %(reason)s,
       chat_fault_rc = %(rc)s
  FROM pending
 WHERE waiting_prompts.id = pending.request_id
