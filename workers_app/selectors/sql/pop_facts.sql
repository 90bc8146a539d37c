-- pop_facts: who pops, and the worker of that name with what it declared last.
-- Returns no row for an unknown key; worker columns are null while nobody has the name.
-- Raw because key, user and worker come in one round trip. Served by the unique keys of api_keys and workers.
SELECT api_keys.user_id,
       users.alias || '#' || users.id AS unique_alias,
       users.is_deleted,
       users.is_flagged,
       users.is_trusted,
       workers.id AS worker_id,
       workers.user_id AS owner_id,
       workers.last_check_in,
       workers.maintenance AS is_in_maintenance,
       workers.maintenance_message,
       workers.speed,
       workers.accepts_chat_jobs,
       workers.accepts_prompt_jobs,
       workers.chat_features,
       workers.chat_max_context_length,
       workers.chat_max_length,
       workers.chat_tools_max_temperature,
       workers.chat_model_id,
       workers.image_transports
  FROM api_keys
  JOIN users ON users.id = api_keys.user_id
  LEFT JOIN workers ON workers.name = %(name)s
 WHERE api_keys.key_hash = ANY(%(key_hashes)s::char(64)[])
   AND api_keys.revoked_at IS NULL
 ORDER BY api_keys.id
 LIMIT 1
