-- post: move kudos. Inserts the transfers whose keys are new, moves the posted sums of the accounts they name, and lifts
-- an account that a debit took below its minimum up to it, out of the mint.
-- Returns one row: the ids without an account (then nothing was written), the keys that were new, and what was forgiven.
--
-- Raw because all of it has to be one statement: five round trips under a hot account's lock would halve its throughput.
-- Served by the primary key of accounts and the unique key of transfers.
--
-- Why it is right under READ COMMITTED, although every part of the statement reads the same snapshot:
--   * `locked` comes first: the insert below asks how many rows it has, and a CTE that locks runs once, in id order,
--     before its count is known. Two posts that share an account therefore run one after the other from here on.
--   * A row that had to be waited for comes out of FOR NO KEY UPDATE in its newest version, not the snapshot's. `locked`
--     is the only place where balances are read; a sub-select of accounts anywhere else would see the old ones.
--   * The insert's conflict check looks at the index, not at the snapshot: it also finds a key committed a moment ago.
--     Sums move by what was really inserted, so a repeated key moves nothing.
--   * The UPDATE finds the snapshot's version of a row and goes on to its newest one, which this transaction holds
--     locked; posted_kudos on its right side is that version's, and so agrees with `locked`.
WITH asked AS (
    SELECT idempotency_key, debit_account, credit_account, amount, kind, cause
      FROM unnest(
               %(keys)s::varchar[],
               %(debit_accounts)s::bigint[],
               %(credit_accounts)s::bigint[],
               %(amounts)s::numeric[],
               %(kinds)s::varchar[],
               %(causes)s::uuid[]
           ) AS asked (idempotency_key, debit_account, credit_account, amount, kind, cause)
),
-- House accounts are negative and have no row to lock.
named AS (
    SELECT debit_account AS id
      FROM asked
     WHERE debit_account > 0
     UNION
    SELECT credit_account
      FROM asked
     WHERE credit_account > 0
),
locked AS MATERIALIZED (
    SELECT id, posted_kudos, minimum_kudos
      FROM accounts
     WHERE id IN (SELECT id FROM named)
     ORDER BY id
       FOR NO KEY UPDATE
),
-- In key order, so that two posts of the same keys over different accounts cannot wait for each other.
inserted AS (
    INSERT INTO transfers (idempotency_key, debit_account, credit_account, amount, kind, cause, created_at)
    SELECT idempotency_key, debit_account, credit_account, amount, kind, cause, %(now)s
      FROM asked
     WHERE (SELECT count(*) FROM locked) = (SELECT count(*) FROM named)
     ORDER BY idempotency_key
        ON CONFLICT (idempotency_key) DO NOTHING
 RETURNING idempotency_key, debit_account, credit_account, amount, cause
),
-- What one account gains over the whole batch, and its last debit, which a forgiven amount takes key and cause from.
moved AS (
    SELECT account AS id,
           sum(kudos) AS kudos,
           max(idempotency_key) FILTER (WHERE kudos < 0) AS debit_key,
           (array_agg(cause ORDER BY idempotency_key DESC) FILTER (WHERE kudos < 0))[1] AS debit_cause
      FROM (
               SELECT debit_account AS account, -amount AS kudos, idempotency_key, cause
                 FROM inserted
                UNION ALL
               SELECT credit_account, amount, idempotency_key, cause
                 FROM inserted
           ) AS sides
     WHERE account > 0
     GROUP BY account
),
-- An account that only receives is not lifted: it may stay below its minimum until its first debit.
settled AS (
    SELECT locked.id,
           moved.kudos,
           CASE WHEN moved.debit_key IS NULL THEN 0
                ELSE greatest(locked.minimum_kudos - (locked.posted_kudos + moved.kudos), 0)
            END AS forgiven,
           moved.debit_key,
           moved.debit_cause
      FROM locked
      JOIN moved ON moved.id = locked.id
),
-- No conflict clause: the key is derived from one inserted just now, and a clash would be a fault to hear of.
forgiven AS (
    INSERT INTO transfers (idempotency_key, debit_account, credit_account, amount, kind, cause, created_at)
    SELECT %(forgiven)s || ':' || debit_key, %(mint)s, id, forgiven, %(forgiven)s, debit_cause, %(now)s
      FROM settled
     WHERE forgiven > 0
     ORDER BY id
 RETURNING amount
),
updated AS (
    UPDATE accounts
       SET posted_kudos = accounts.posted_kudos + settled.kudos + settled.forgiven
      FROM settled
     WHERE accounts.id = settled.id
       AND settled.kudos + settled.forgiven <> 0
)
SELECT ARRAY(SELECT id FROM named EXCEPT SELECT id FROM locked ORDER BY 1) AS unknown_accounts,
       ARRAY(SELECT idempotency_key FROM inserted) AS posted_keys,
       (SELECT coalesce(sum(amount), 0) FROM forgiven) AS forgiven_kudos
