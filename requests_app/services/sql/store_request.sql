-- store_request: write a request; an active one with one queue row for each model it accepts, and one row for any model when
-- it names none. Raw because request and queue rows are one state change and one round trip.
WITH request AS (
    INSERT INTO waiting_prompts (
        id, user_id, api_key_id, shared_key_id, prompt, submitted_prompt, params, models, workers, worker_blacklist,
        trusted_workers, validated_backends, slow_workers, n, jobs, max_length, max_context_length, active, order_key,
        consumed_kudos, quoted_kudos, upfront_kudos, operation_key, operation_fingerprint, feature_mask, ipaddr,
        client_agent, proxied_account, webhook, created, expiry, is_chat, messages, chat_extras, context_adjustments,
        chat_required_features, chat_tools_temperature, chat_conformance
    )
    VALUES (
        %(id)s, %(user_id)s, %(api_key_id)s, %(shared_key_id)s, %(prompt)s, %(submitted_prompt)s, %(params)s,
        %(models)s::varchar[], %(workers)s::uuid[], %(worker_blacklist)s, %(trusted_workers)s, %(validated_backends)s,
        %(slow_workers)s, %(n)s, %(n)s, %(max_length)s, %(max_context_length)s, %(active)s, %(order_key)s, %(tax)s,
        %(quote)s, %(upfront)s, %(operation_key)s, %(operation_fingerprint)s, %(feature_mask)s, %(address)s::inet,
        %(client_agent)s, %(proxied_account)s, %(webhook)s, %(now)s, %(expiry)s, %(is_chat)s, %(messages)s, %(extras)s,
        %(context_adjustments)s, %(needs)s::text[], %(tools_temperature)s, %(conformance)s
    )
 RETURNING id, user_id, models, order_key, feature_mask, created, max_length, max_context_length,
           chat_tools_temperature, is_chat, active
)
INSERT INTO queue_rows (
    request_id, model, is_chat, feature_mask, order_key, created, max_length, max_context_length, tools_temperature,
    user_id
)
SELECT id, unnest(CASE WHEN cardinality(models) = 0 THEN '{""}' ELSE models END), is_chat, feature_mask, order_key,
       created, max_length, max_context_length, chat_tools_temperature, user_id
  FROM request
 WHERE active
