-- assign: make the generations of claimed slots and take the request out of the queue when they were the last ones.
-- A statement of its own: it sees what the claim waited for, such as a queue row that a returned slot put back.
-- Raw because both are one state change. Served by the primary keys.
WITH emptied AS (
    DELETE FROM queue_rows
     WHERE request_id = %(request_id)s
       AND %(waiting)s = 0
)
INSERT INTO processing_gens (
    id, request_id, worker_id, model, job_ttl, created, deadline, fake, over_capacity_at_assignment,
    assigned_model, assigned_max_context_length, assigned_max_length
)
SELECT id, %(request_id)s, %(worker_id)s, %(model)s, %(lease_seconds)s, %(now)s, %(deadline)s, %(fake)s,
       %(over_capacity)s, %(assigned_model)s, %(max_context_length)s, %(max_length)s
  FROM unnest(%(ids)s::uuid[]) AS generation (id)
