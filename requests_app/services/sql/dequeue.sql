-- dequeue: take requests out of the queue whose rows this transaction has locked and faulted.
-- A statement of its own: it sees a queue row that a slot returned meanwhile put back. Served by the primary key.
DELETE FROM queue_rows
 WHERE request_id = ANY(%(request_ids)s::uuid[])
