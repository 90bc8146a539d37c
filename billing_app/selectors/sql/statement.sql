-- statement: the newest transfers of one account, newest first, with the balance each of them left.
-- Raw for the running balance: it counts back from what the account has now, so a short statement of a long history reads
-- only the lines it shows. A house account keeps no sum; the lines then count back from the sum of all its transfers.
-- Served by transfers_debit_statement and transfers_credit_statement. In an account's own order ids are the order of
-- posting: they are given under the account's lock.
WITH lines AS (
    (
        SELECT id, idempotency_key, created_at, kind, credit_account AS other_account, amount, cause,
               CASE WHEN credit_account = debit_account THEN 0 ELSE -amount END AS change
          FROM transfers
         WHERE debit_account = %(account_id)s
         ORDER BY id DESC
         LIMIT %(limit)s
    )
     UNION ALL
    (
        SELECT id, idempotency_key, created_at, kind, debit_account, amount, cause, amount
          FROM transfers
         WHERE credit_account = %(account_id)s
           AND debit_account <> %(account_id)s
         ORDER BY id DESC
         LIMIT %(limit)s
    )
     ORDER BY id DESC
     LIMIT %(limit)s
),
now_posted AS (
    SELECT CASE
               WHEN %(account_id)s > 0 THEN (
                   SELECT posted_kudos
                     FROM accounts
                    WHERE id = %(account_id)s
               )
               ELSE (
                   SELECT coalesce(sum(amount) FILTER (WHERE credit_account = %(account_id)s), 0)
                          - coalesce(sum(amount) FILTER (WHERE debit_account = %(account_id)s), 0)
                     FROM transfers
                    WHERE credit_account = %(account_id)s
                       OR debit_account = %(account_id)s
               )
           END AS kudos
),
running AS (
    SELECT lines.id, lines.idempotency_key, lines.created_at, lines.kind, lines.other_account, lines.amount, lines.cause,
           lines.change,
           now_posted.kudos - coalesce(
               sum(change) OVER (ORDER BY lines.id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0
           ) AS balance
      FROM lines
     CROSS JOIN now_posted
)
SELECT running.created_at,
       running.kind,
       running.other_account,
       users.alias || '#' || users.id AS other_alias,
       accounts.kind AS other_kind,
       running.amount,
       running.change,
       running.balance,
       running.idempotency_key,
       running.cause
  FROM running
  LEFT JOIN accounts
    ON accounts.id = running.other_account
  LEFT JOIN users
    ON users.id = accounts.user_id
 WHERE running.created_at >= coalesce(%(since)s, '-infinity'::timestamptz)
 ORDER BY running.id DESC
