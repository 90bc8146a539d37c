-- intake_facts: who submits, what they have, and who serves the models: one row always.
-- user_id is null for an unknown key; the largest limits are null when nobody serves. able_limits holds each pair of limits
-- (length, context) of the serving workers that declare all the request needs. waiting_slots is an early look without a
-- lock at what counts against the user's limit, for the refusal at its documented place.
-- Raw because all of it has to come in one round trip.
-- Served by the unique key of api_keys, the unique key of accounts and the partial index workers_chat_model_online.
SELECT payer.user_id,
       payer.account_id,
       payer.posted_kudos,
       payer.concurrency,
       queue.waiting_slots,
       fleet.known_models,
       fleet.serving_workers,
       fleet.largest_length,
       fleet.largest_context,
       fleet.able_limits
  FROM (
           SELECT coalesce(array_agg(DISTINCT chat_model_id), '{}') AS known_models,
                  count(*) FILTER (WHERE NOT maintenance) AS serving_workers,
                  max(chat_max_length) FILTER (WHERE NOT maintenance) AS largest_length,
                  max(chat_max_context_length) FILTER (WHERE NOT maintenance) AS largest_context,
                  coalesce(
                      array_agg(DISTINCT ARRAY[chat_max_length, chat_max_context_length]) FILTER (
                          WHERE NOT maintenance
                            AND chat_features @> %(needs)s::text[]
                      ),
                      '{}'
                  ) AS able_limits
             FROM workers
            WHERE accepts_chat_jobs
              AND chat_model_id = ANY(%(models)s::varchar[])
              AND last_check_in >= %(online_since)s
       ) AS fleet
  LEFT JOIN LATERAL (
           SELECT api_keys.user_id, users.concurrency, accounts.id AS account_id, accounts.posted_kudos
             FROM api_keys
             JOIN users ON users.id = api_keys.user_id AND NOT users.is_deleted
             JOIN accounts ON accounts.user_id = api_keys.user_id AND accounts.kind = 'balance'
            WHERE api_keys.key_hash = ANY(%(key_hashes)s::char(64)[])
              AND api_keys.revoked_at IS NULL
            ORDER BY api_keys.id
            LIMIT 1
       ) AS payer ON true
 CROSS JOIN LATERAL (
           SELECT coalesce(sum(n), 0)::integer AS waiting_slots
             FROM waiting_prompts
            WHERE user_id = payer.user_id
              AND n > 0
              AND NOT faulted
              AND (payer.user_id <> %(anonymous)s OR waiting_prompts.models && %(models)s::varchar[])
       ) AS queue
