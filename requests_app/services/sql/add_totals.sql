-- add_totals: add sums of finished generations to the totals of their minute, their hour and all time.
-- A sum may stand here several times under one key, for what were different models before they were named; one statement
-- must not write a row twice, so they are added up first.
-- Raw for the conflict clause that adds. Served by the primary key.
INSERT INTO generation_totals (
    period, starts_at, model, is_chat, outcome, generations, requested_tokens, written_tokens, milliseconds
)
SELECT part.period, part.starts_at, finished.model, finished.is_chat, finished.outcome, sum(finished.generations),
       sum(finished.requested_tokens), sum(finished.written_tokens), sum(finished.milliseconds)
  FROM unnest(
           %(model)s::varchar[], %(is_chat)s::boolean[], %(outcome)s::varchar[], %(minute)s::timestamptz[],
           %(generations)s::bigint[], %(requested_tokens)s::bigint[], %(written_tokens)s::bigint[],
           %(milliseconds)s::bigint[]
       ) AS finished (model, is_chat, outcome, minute, generations, requested_tokens, written_tokens, milliseconds)
 CROSS JOIN LATERAL (
           VALUES ('minute', finished.minute),
                  ('hour', date_trunc('hour', finished.minute, 'UTC')),
                  ('all', %(beginning)s::timestamptz)
       ) AS part (period, starts_at)
 GROUP BY part.period, part.starts_at, finished.model, finished.is_chat, finished.outcome
    ON CONFLICT (period, starts_at, model, is_chat, outcome) DO UPDATE
   SET generations = generation_totals.generations + excluded.generations,
       requested_tokens = generation_totals.requested_tokens + excluded.requested_tokens,
       written_tokens = generation_totals.written_tokens + excluded.written_tokens,
       milliseconds = generation_totals.milliseconds + excluded.milliseconds
