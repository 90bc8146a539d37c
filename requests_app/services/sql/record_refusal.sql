-- record_refusal: write on a pending generation and its request why its reply was refused. No row comes back when it is
-- pending no more. A fake generation is nobody's try, so its request stays as it is.
-- Raw because it is one state change over two rows. The request is locked first (lock order); the generation's own condition is
-- judged again on its newest version after any wait. Served by the primary keys.
WITH request AS (
    SELECT id
      FROM waiting_prompts
     WHERE id = %(request_id)s
       FOR NO KEY UPDATE
),
refused AS (
    UPDATE processing_gens
       SET chat_refusal_rc = %(rc)s
      FROM request
     WHERE processing_gens.id = %(generation_id)s
       AND processing_gens.request_id = request.id
       AND processing_gens.generation IS NULL
       AND NOT processing_gens.faulted
 RETURNING processing_gens.request_id, processing_gens.fake
)
UPDATE waiting_prompts
   SET chat_fault_reason = %(reason)s,
       chat_fault_rc = %(rc)s
  FROM refused
 WHERE waiting_prompts.id = refused.request_id
   AND NOT refused.fake
