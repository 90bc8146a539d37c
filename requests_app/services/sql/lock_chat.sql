-- lock_chat: lock one chat request, in a statement of its own: what follows sees what was committed until then.
-- Served by the primary key.
SELECT id
  FROM waiting_prompts
 WHERE id = %(request_id)s
   AND is_chat
   FOR NO KEY UPDATE
