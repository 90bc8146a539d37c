-- account_sums: every account with the sums it keeps, beside what its open holds add up to.
-- Raw because both sides come in one statement. Reads both tables whole.
SELECT accounts.id AS account_id,
       accounts.posted_kudos,
       accounts.held_kudos,
       coalesce(sum(holds.kudos), 0) AS reserved_kudos,
       count(holds.id) AS open_holds
  FROM accounts
  LEFT JOIN holds
    ON holds.account_id = accounts.id
   AND holds.resolved_at IS NULL
 GROUP BY accounts.id
 ORDER BY accounts.id
