-- generations: what a request has stored or in flight, oldest first; tries that failed and fakes are left out.
-- Raw for the join into values in one round trip. Served by the index on processing_gens.request_id.
SELECT generation.worker_id,
       workers.name AS worker_name,
       generation.model,
       generation.state,
       generation.generation AS text,
       generation.seed,
       generation.gen_metadata::text AS gen_metadata,
       generation.created,
       generation.message::text AS message,
       generation.finish_reason,
       generation.native_finish_reason,
       generation.prompt_tokens,
       generation.completion_tokens,
       generation.reasoning_tokens,
       generation.charge_basis
  FROM processing_gens AS generation
  JOIN workers ON workers.id = generation.worker_id
 WHERE generation.request_id = %(request_id)s
   AND NOT generation.faulted
   AND NOT generation.fake
 ORDER BY generation.created, generation.id
