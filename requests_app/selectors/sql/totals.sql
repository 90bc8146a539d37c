-- totals: what the generations of one family add up to within each span: one row of all models together, with a null for
-- their name, and one of each model that had any. Tokens and seconds are those of replies that were wanted.
-- Raw for the spans and the grouping sets. Served by the primary key.
SELECT span.name AS span,
       total.model,
       coalesce(sum(total.generations) FILTER (WHERE total.outcome = 'ok'), 0)::bigint AS replies,
       coalesce(sum(total.generations) FILTER (WHERE total.outcome = 'cancelled'), 0)::bigint AS cancelled,
       coalesce(sum(total.generations) FILTER (WHERE total.outcome = 'faulted'), 0)::bigint AS faulted,
       coalesce(sum(total.requested_tokens) FILTER (WHERE total.outcome = 'ok'), 0)::bigint AS requested_tokens,
       coalesce(sum(total.written_tokens) FILTER (WHERE total.outcome = 'ok'), 0)::bigint AS written_tokens,
       coalesce(sum(total.milliseconds) FILTER (WHERE total.outcome = 'ok'), 0)::bigint AS milliseconds
  FROM unnest(
           %(names)s::text[], %(periods)s::varchar[], %(since)s::timestamptz[], %(until)s::timestamptz[]
       ) WITH ORDINALITY AS span (name, period, since, until, place)
  LEFT JOIN generation_totals AS total
    ON total.period = span.period
   AND total.starts_at >= span.since
   AND total.starts_at < span.until
   AND total.is_chat = %(is_chat)s
 GROUP BY GROUPING SETS ((span.place, span.name), (span.place, span.name, total.model))
HAVING grouping(total.model) = 1
    OR total.model IS NOT NULL
 ORDER BY span.place, total.model NULLS FIRST
