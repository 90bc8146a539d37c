-- lapsed_generations: pending generations whose lease is over, longest first.
-- Raw for the partial index processing_gens_pending, which holds pending generations alone.
SELECT generation.id,
       generation.request_id,
       request.is_chat,
       request.max_length,
       generation.over_capacity_at_assignment AS is_over_capacity,
       users.is_trusted AS is_owner_trusted
  FROM processing_gens AS generation
  JOIN waiting_prompts AS request ON request.id = generation.request_id
  JOIN workers ON workers.id = generation.worker_id
  JOIN users ON users.id = workers.user_id
 WHERE generation.generation IS NULL
   AND NOT generation.faulted
   AND generation.deadline <= %(now)s
 ORDER BY generation.deadline, generation.id
 LIMIT %(limit)s
