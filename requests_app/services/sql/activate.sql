-- activate: write a chat request as active, with one queue row for each model it accepts.
-- Raw because request and queue rows are one state change and one round trip.
WITH request AS (
    INSERT INTO waiting_prompts (
        id, user_id, prompt, submitted_prompt, params, models, n, jobs, max_length, max_context_length, active,
        order_key, consumed_kudos, quoted_kudos, operation_key, operation_fingerprint, feature_mask, ipaddr, client_agent, created, expiry, is_chat, messages, chat_extras,
        context_adjustments, chat_required_features, chat_tools_temperature, chat_conformance
    )
    VALUES (
        %(id)s, %(user_id)s, %(prompt)s, %(submitted_prompt)s, %(params)s, %(models)s::varchar[], 1, 1,
        %(max_length)s, %(max_context_length)s, true, %(order_key)s, %(tax)s, %(quote)s,
        %(operation_key)s, %(operation_fingerprint)s, %(feature_mask)s, %(address)s::inet,
        %(client_agent)s, %(now)s, %(expiry)s, true, %(messages)s, %(extras)s, %(context_adjustments)s,
        %(needs)s::text[], %(tools_temperature)s, %(conformance)s
    )
 RETURNING id, user_id, models, order_key, feature_mask, created, max_length, max_context_length,
           chat_tools_temperature
)
INSERT INTO queue_rows (
    request_id, model, is_chat, feature_mask, order_key, created, max_length, max_context_length, tools_temperature,
    user_id
)
SELECT id, unnest(models), true, feature_mask, order_key, created, max_length, max_context_length,
       chat_tools_temperature, user_id
  FROM request
