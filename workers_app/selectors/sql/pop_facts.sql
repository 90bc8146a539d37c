-- pop_facts: who pops, and the worker of that name with what it declared last.
-- Returns no row for an unknown key; worker columns are null while nobody has the name.
-- Raw because key, user, worker and what it is told come in one round trip. Served by the unique keys of api_keys and
-- workers and worker_messages_expiry.
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
       workers.paused AS is_paused,
       workers.uptime_seconds,
       workers.rewarded_uptime_seconds,
       (
           SELECT json_agg(json_build_object(
                      'id', told.id, 'message', told.message, 'origin', told.origin,
                      'expiry', extract(epoch FROM told.expiry)
                  ))::text
             FROM (
                      SELECT id, message, origin, expiry
                        FROM worker_messages
                       WHERE expiry > %(now)s
                         AND (worker_id IS NULL OR worker_id = workers.id)
                       ORDER BY created, id
                       LIMIT %(most_messages)s
                  ) AS told
       ) AS told_messages,
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
