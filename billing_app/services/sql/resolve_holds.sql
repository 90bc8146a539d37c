-- resolve_holds: end the open holds among some keys and free what they held. Returns those this call ended.
-- A hold of whose amount some was charged is settled by it. Keys that nobody has, and holds that are resolved, are left out.
--
-- Raw because all of it has to be one statement under the accounts' locks. Served by the unique key of holds and the
-- primary key of accounts.
--
--   * Accounts are locked first, by ascending id, together with the further ones this transaction is about to post to:
--     a post after a settlement would otherwise lock a lower account than the hold's.
--   * A hold is written only under its account's lock, so its row is never waited for. Whether it is still open is
--     judged on its newest version, which the UPDATE goes on to; `asked` saw the snapshot's.
WITH asked AS (
    SELECT holds.id, holds.account_id, charged.kudos
      FROM unnest(%(keys)s::varchar[], %(charged)s::numeric[]) AS charged (key, kudos)
      JOIN holds ON holds.key = charged.key
     WHERE holds.resolved_at IS NULL
),
named AS (
    SELECT account_id AS id
      FROM asked
     UNION
    SELECT unnest(%(further_accounts)s::bigint[])
),
locked AS MATERIALIZED (
    SELECT id
      FROM accounts
     WHERE id IN (SELECT id FROM named)
     ORDER BY id
       FOR NO KEY UPDATE
),
resolved AS (
    UPDATE holds
       SET resolution = CASE WHEN asked.kudos > 0 THEN %(settled)s ELSE %(resolution)s END,
           resolved_at = %(now)s,
           settled_kudos = least(holds.kudos, asked.kudos)
      FROM asked
     WHERE holds.id = asked.id
       AND holds.resolved_at IS NULL
       AND (SELECT count(*) FROM locked) > 0
 RETURNING holds.key, holds.account_id, holds.kudos, holds.settled_kudos
),
released AS (
    SELECT account_id, sum(kudos) AS kudos
      FROM resolved
     GROUP BY account_id
),
updated AS (
    UPDATE accounts
       SET held_kudos = accounts.held_kudos - released.kudos
      FROM released
     WHERE accounts.id = released.account_id
)
SELECT key, settled_kudos
  FROM resolved
 ORDER BY key
