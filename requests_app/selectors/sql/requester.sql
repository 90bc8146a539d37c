-- requester: who submits under a key, what they may, and whether the site takes requests: one row always.
-- user_id is null for a key nobody has. A shared key stands for its owner; whether it is used up or over is judged by the
-- caller. waiting_slots is an early look without a lock at what counts against the user's limit, for the refusal at its
-- documented place.
-- Raw because all of it has to come in one round trip. Served by the unique key of api_keys, the primary keys of
-- shared_keys and users, the unique key of accounts, and waiting_prompts_of_user and queue_rows_anonymous, the latter
-- for user 0, the anonymous one, who is counted by model.
SELECT coalesce((SELECT maintenance FROM site_modes), false) AS is_in_maintenance,
       users.id AS user_id,
       accounts.id AS account_id,
       accounts.posted_kudos,
       users.concurrency,
       coalesce(users.is_deleted, false) AS is_deleted,
       coalesce(users.is_flagged, false) AS is_flagged,
       coalesce(users.is_trusted, false) AS is_trusted,
       coalesce(users.is_service, false) AS is_service,
       key.api_key_id,
       key.shared_key_id,
       key.left_kudos,
       key.max_text_tokens,
       key.expires_at,
       queue.waiting_slots
  FROM (SELECT 1) AS always
  LEFT JOIN LATERAL (
           (
               SELECT user_id,
                      id AS api_key_id,
                      NULL::uuid AS shared_key_id,
                      NULL::numeric AS left_kudos,
                      NULL::integer AS max_text_tokens,
                      NULL::timestamptz AS expires_at
                 FROM api_keys
                WHERE key_hash = ANY(%(key_hashes)s::char(64)[])
                  AND revoked_at IS NULL
                ORDER BY id
                LIMIT 1
           )
           UNION ALL
           SELECT user_id, NULL, id, left_kudos, max_text_tokens, expires_at
             FROM shared_keys
            WHERE id = %(shared_key_id)s::uuid
       ) AS key ON true
  LEFT JOIN users ON users.id = key.user_id
  LEFT JOIN accounts ON accounts.user_id = users.id AND accounts.kind = 'balance'
 CROSS JOIN LATERAL (
           SELECT coalesce(sum(n), 0)::integer AS waiting_slots
             FROM (
                      SELECT n
                        FROM waiting_prompts
                       WHERE (users.id <> 0 OR cardinality(%(models)s::varchar[]) = 0)
                         AND user_id = users.id
                         AND n > 0
                         AND active
                         AND NOT faulted
                       UNION ALL
                      SELECT n
                        FROM waiting_prompts
                       WHERE users.id = 0
                         AND id IN (
                                 SELECT request_id
                                   FROM queue_rows
                                  WHERE user_id = 0
                                    AND model = ANY(%(models)s::varchar[])
                             )
                         AND n > 0
                         AND active
                         AND NOT faulted
                  ) AS waiting
       ) AS queue
