-- place_hold: reserve kudos of one account when its free balance covers them.
-- Returns the account's free balance as it was, and whether the hold was placed: not when too little is free, nor when
-- a hold has the key already. No row comes back when there is no such account.
--
-- Raw because all of it has to be one statement under the account's lock. Served by the primary key of accounts and the
-- unique key of holds. A row that had to be waited for comes out of FOR NO KEY UPDATE in its newest version, so two
-- placements at once judge one after the other; `locked` is the only place where the balance is read.
WITH locked AS MATERIALIZED (
    SELECT id, posted_kudos - held_kudos - minimum_kudos AS free_kudos
      FROM accounts
     WHERE id = %(account_id)s
       FOR NO KEY UPDATE
),
placed AS (
    INSERT INTO holds (account_id, key, kudos, cause, placed_at, expires_at)
    SELECT id, %(key)s, %(kudos)s, %(cause)s, %(now)s, %(expires_at)s
      FROM locked
     WHERE free_kudos >= %(kudos)s
        ON CONFLICT (key) DO NOTHING
 RETURNING account_id, kudos
),
updated AS (
    UPDATE accounts
       SET held_kudos = accounts.held_kudos + placed.kudos
      FROM placed
     WHERE accounts.id = placed.account_id
)
SELECT free_kudos,
       EXISTS (SELECT 1 FROM placed) AS is_placed
  FROM locked
