-- progress: what decides whether a request is done, and what it has cost. Fake generations are left out.
-- Raw because the counts and the flags have to come from one snapshot. Served by the index on processing_gens.request_id.
SELECT request.jobs,
       request.n AS waiting,
       request.faulted AS is_faulted,
       request.cancelled_at IS NOT NULL AS is_cancelled,
       counts.in_flight,
       counts.stored,
       request.consumed_kudos,
       request.upfront_kudos
  FROM waiting_prompts AS request
 CROSS JOIN LATERAL (
           SELECT count(*) FILTER (WHERE generation IS NULL AND NOT faulted) AS in_flight,
                  count(*) FILTER (WHERE generation IS NOT NULL AND NOT faulted) AS stored
             FROM processing_gens
            WHERE request_id = request.id
              AND NOT fake
       ) AS counts
 WHERE request.id = %(request_id)s
