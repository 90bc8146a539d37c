-- slice_sums: what each account gained over one slice of the ledger, and how many transfers the slice has.
-- Raw for the two sides of a transfer. Served by the primary key of transfers.
WITH slice AS (
    SELECT debit_account, credit_account, amount
      FROM transfers
     WHERE id > %(after)s
       AND id <= %(until)s
),
sides AS (
    SELECT debit_account AS account_id, -amount AS kudos, 1 AS transfers
      FROM slice
     UNION ALL
    SELECT credit_account, amount, 0
      FROM slice
)
SELECT account_id,
       sum(kudos) AS kudos,
       sum(transfers)::bigint AS transfers
  FROM sides
 GROUP BY account_id
 ORDER BY account_id
