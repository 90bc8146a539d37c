-- activate_stored: make a request active that waited for its objects, with its claim and its queue rows. No row comes back
-- when it is gone, or active already. Raw because it is one state change over two tables. Served by the primary key.
WITH request AS (
    UPDATE waiting_prompts
       SET active = true,
           order_key = %(order_key)s,
           consumed_kudos = %(tax)s,
           operation_key = %(operation_key)s,
           operation_fingerprint = %(operation_fingerprint)s,
           expiry = %(expiry)s
     WHERE id = %(id)s
       AND NOT active
 RETURNING id, user_id, models, order_key, feature_mask, created, max_length, max_context_length,
           chat_tools_temperature, is_chat
)
INSERT INTO queue_rows (
    request_id, model, is_chat, feature_mask, order_key, created, max_length, max_context_length, tools_temperature,
    user_id
)
SELECT id, unnest(CASE WHEN cardinality(models) = 0 THEN '{""}' ELSE models END), is_chat, feature_mask, order_key,
       created, max_length, max_context_length, chat_tools_temperature, user_id
  FROM request
RETURNING request_id
