-- expire: delete a batch of requests past their expiry, with their generations and queue rows, and return what each was.
-- Rows another transaction holds (a pop that extends the expiry) are skipped and come back with the next batch. Counts are of
-- the generations that were deleted. Raw because all of it is one state change. Served by waiting_prompts_expiry.
-- The foreign keys are checked at the commit, so the parts of the statement may run in any order.
WITH expired AS MATERIALIZED (
    SELECT id, is_chat, jobs, n, faulted, cancelled_at, chat_fault_reason, chat_fault_rc
      FROM waiting_prompts
     WHERE expiry <= %(now)s
     ORDER BY expiry, id
     LIMIT %(limit)s
       FOR UPDATE SKIP LOCKED
),
generations AS (
    DELETE FROM processing_gens
     USING expired
     WHERE processing_gens.request_id = expired.id
 RETURNING processing_gens.request_id, processing_gens.generation, processing_gens.faulted, processing_gens.fake
),
dequeued AS (
    DELETE FROM queue_rows
     USING expired
     WHERE queue_rows.request_id = expired.id
),
requests AS (
    DELETE FROM waiting_prompts
     USING expired
     WHERE waiting_prompts.id = expired.id
 RETURNING waiting_prompts.id
)
SELECT expired.id,
       expired.is_chat,
       expired.jobs,
       expired.n AS waiting,
       expired.faulted AS is_faulted,
       expired.cancelled_at IS NOT NULL AS is_cancelled,
       expired.chat_fault_reason AS fault_reason,
       expired.chat_fault_rc AS fault_rc,
       count(generations.request_id) FILTER (WHERE generations.generation IS NULL AND NOT generations.faulted) AS in_flight,
       count(generations.request_id) FILTER (WHERE generations.generation IS NOT NULL AND NOT generations.faulted) AS stored
  FROM expired
  JOIN requests ON requests.id = expired.id
  LEFT JOIN generations ON generations.request_id = expired.id AND NOT generations.fake
 GROUP BY expired.id, expired.is_chat, expired.jobs, expired.n, expired.faulted, expired.cancelled_at,
          expired.chat_fault_reason, expired.chat_fault_rc
