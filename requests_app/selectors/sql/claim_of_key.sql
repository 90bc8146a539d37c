-- claim_of_key: the request that holds an operation key of the user behind an API key; no row when the key is free, or
-- nobody has the API key. Raw for the join in one round trip.
-- Served by the unique key of api_keys and ix_waiting_prompts_user_operation_key.
SELECT waiting_prompts.id AS request_id,
       waiting_prompts.operation_fingerprint AS fingerprint,
       waiting_prompts.quoted_kudos
  FROM api_keys
  JOIN waiting_prompts
    ON waiting_prompts.user_id = api_keys.user_id
   AND waiting_prompts.operation_key = %(operation_key)s
   AND waiting_prompts.active
 WHERE api_keys.key_hash = ANY(%(key_hashes)s::char(64)[])
   AND api_keys.revoked_at IS NULL
 ORDER BY api_keys.id
 LIMIT 1
