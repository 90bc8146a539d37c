-- profile_by_key: the user a key belongs to, as the user sees themself; no row when no valid key has one of the hashes.
-- Raw because the three tables come in one statement and as plain values. Served by the unique index on the hash, the
-- primary key of users and the unique (user, kind) of accounts.
SELECT users.id,
       users.alias || '#' || users.id AS unique_alias,
       balance.posted_kudos AS kudos,
       escrow.posted_kudos AS evaluating_kudos,
       users.concurrency,
       users.is_trusted,
       users.is_moderator,
       users.is_flagged,
       users.is_service,
       users.is_education,
       users.is_customizer,
       users.is_pseudonymous,
       users.is_deleted,
       users.contact,
       greatest(floor(extract(epoch FROM %(now)s - users.created_at))::bigint, 0) AS account_age_seconds
  FROM api_keys
  JOIN users
    ON users.id = api_keys.user_id
  JOIN accounts AS balance
    ON balance.user_id = users.id
   AND balance.kind = 'balance'
  JOIN accounts AS escrow
    ON escrow.user_id = users.id
   AND escrow.kind = 'escrow'
 WHERE api_keys.key_hash = ANY(%(key_hashes)s::char(64)[])
   AND api_keys.revoked_at IS NULL
 LIMIT 1
