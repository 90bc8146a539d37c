-- expire: delete locked requests with their generations and queue rows, and return what each was; counts are of the
-- generations that were deleted. A statement of its own, after the lock: it sees a generation that was made up to then.
-- Raw because all of it is one state change. Served by the primary keys and the indexes on request_id.
-- The foreign keys are checked at the commit, so the parts of the statement may run in any order.
WITH generations AS (
    DELETE FROM processing_gens
     WHERE request_id = ANY(%(request_ids)s::uuid[])
 RETURNING request_id, generation, faulted, fake
),
dequeued AS (
    DELETE FROM queue_rows
     WHERE request_id = ANY(%(request_ids)s::uuid[])
),
requests AS (
    DELETE FROM waiting_prompts
     WHERE id = ANY(%(request_ids)s::uuid[])
 RETURNING id, is_chat, jobs, n, faulted, cancelled_at, chat_fault_reason, chat_fault_rc, upfront_kudos, consumed_kudos
),
counts AS (
    SELECT request_id,
           count(*) FILTER (WHERE generation IS NULL AND NOT faulted) AS in_flight,
           count(*) FILTER (WHERE generation IS NOT NULL AND NOT faulted) AS stored
      FROM generations
     WHERE NOT fake
     GROUP BY request_id
)
SELECT requests.id,
       requests.is_chat,
       requests.upfront_kudos,
       requests.consumed_kudos,
       requests.jobs,
       requests.n AS waiting,
       requests.faulted AS is_faulted,
       requests.cancelled_at IS NOT NULL AS is_cancelled,
       requests.chat_fault_reason AS fault_reason,
       requests.chat_fault_rc AS fault_rc,
       coalesce(counts.in_flight, 0) AS in_flight,
       coalesce(counts.stored, 0) AS stored
  FROM requests
  LEFT JOIN counts ON counts.request_id = requests.id
