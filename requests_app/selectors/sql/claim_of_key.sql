-- claim_of_key: the request that holds an operation key of the user behind an API key or a shared key, whether that still
-- may be used or not (ORD-27); no row when the operation key is free, or nobody has the API key. Raw for the join in one
-- round trip. Served by the unique key of api_keys, the primary key of shared_keys and
-- ix_waiting_prompts_user_operation_key.
SELECT waiting_prompts.id AS request_id,
       waiting_prompts.operation_fingerprint AS fingerprint,
       waiting_prompts.quoted_kudos
  FROM (
           (
               SELECT user_id
                 FROM api_keys
                WHERE key_hash = ANY(%(key_hashes)s::char(64)[])
                  AND revoked_at IS NULL
                ORDER BY id
                LIMIT 1
           )
           UNION ALL
           SELECT user_id
             FROM shared_keys
            WHERE id = %(shared_key_id)s::uuid
       ) AS key
  JOIN waiting_prompts
    ON waiting_prompts.user_id = key.user_id
   AND waiting_prompts.operation_key = %(operation_key)s
   AND waiting_prompts.active
