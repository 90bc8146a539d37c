-- user_accounts: a user's accounts with their open holds, the balance first; no row when there is no such user or they
-- have no account yet. Raw because the holds are counted beside. Served by the primary key of users, the unique
-- (user, kind) of accounts and the index on the account of holds.
SELECT accounts.id,
       accounts.kind,
       users.alias || '#' || users.id AS unique_alias,
       accounts.posted_kudos,
       accounts.held_kudos,
       accounts.minimum_kudos,
       (
           SELECT count(*)
             FROM holds
            WHERE holds.account_id = accounts.id
              AND holds.resolved_at IS NULL
       ) AS open_holds
  FROM users
  JOIN accounts
    ON accounts.user_id = users.id
 WHERE users.id = %(user_id)s
 ORDER BY accounts.kind
