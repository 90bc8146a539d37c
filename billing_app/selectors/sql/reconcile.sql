-- reconcile: every account whose posted sum is not what its transfers add up to, with the totals beside it; the totals
-- alone, with a null account, when there is none. An account that transfers name and no row has counts as drifted.
-- Raw because all of it has to be read in one snapshot, or a transfer posted meanwhile would look like drift.
-- Reads both tables whole: a daily task and an operator's command, never a request.
WITH sides AS (
    SELECT debit_account AS account, -amount AS kudos
      FROM transfers
     UNION ALL
    SELECT credit_account, amount
      FROM transfers
),
sums AS (
    SELECT account, sum(kudos) AS kudos
      FROM sides
     GROUP BY account
),
totals AS (
    SELECT (SELECT coalesce(sum(posted_kudos), 0) FROM accounts)
           + (SELECT coalesce(sum(kudos), 0) FROM sums WHERE account < 0) AS total,
           (SELECT count(*) FROM accounts) AS accounts,
           (SELECT count(*) FROM transfers) AS transfers
),
drifted AS (
    SELECT coalesce(accounts.id, sums.account) AS account_id,
           coalesce(accounts.posted_kudos, 0) AS posted_kudos,
           coalesce(sums.kudos, 0) AS transferred_kudos
      FROM accounts
      FULL JOIN (SELECT account, kudos FROM sums WHERE account > 0) AS sums
        ON sums.account = accounts.id
     WHERE coalesce(accounts.posted_kudos, 0) <> coalesce(sums.kudos, 0)
        OR accounts.id IS NULL
)
SELECT totals.total,
       totals.accounts,
       totals.transfers,
       drifted.account_id,
       drifted.posted_kudos,
       drifted.transferred_kudos
  FROM totals
  LEFT JOIN drifted
    ON true
 ORDER BY drifted.account_id
