-- take_finished: remove a batch of finished generations, and return what they add up to by model, family, outcome and
-- minute. Every row a statement sees and takes is summed here and nowhere else; one that is committed later, with whatever
-- id, comes with a later batch.
-- Raw because it is a deletion that sums what it deleted. Served by the primary key; the batch is an array and not a join,
-- so that it stays a look-up of its ids however long the backlog is.
WITH taken AS (
    DELETE FROM finished_generations
     WHERE id = ANY(ARRAY(
               SELECT id
                 FROM finished_generations
                ORDER BY id
                LIMIT %(limit)s
           ))
 RETURNING model, is_chat, outcome, finished_at, max_length, written_tokens, milliseconds
)
SELECT model,
       is_chat,
       outcome,
       date_trunc('minute', finished_at, 'UTC') AS minute,
       count(*) AS generations,
       sum(max_length)::bigint AS requested_tokens,
       sum(written_tokens)::bigint AS written_tokens,
       sum(milliseconds)::bigint AS milliseconds
  FROM taken
 GROUP BY model, is_chat, outcome, minute
