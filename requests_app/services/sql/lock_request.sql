-- lock_request: lock one request of a family, in a statement of its own: what follows sees what was committed until then.
-- Served by the primary key.
SELECT id
  FROM waiting_prompts
 WHERE id = %(request_id)s
   AND is_chat = %(is_chat)s
   FOR NO KEY UPDATE
