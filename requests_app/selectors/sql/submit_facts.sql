-- submit_facts: a generation with its request and worker, and the user behind the key that submits it.
-- Returns no row for an unknown generation; submitter columns are null for an unknown key.
-- Raw because all of it comes in one round trip. Served by primary keys and the unique key of api_keys.
SELECT generation.id,
       generation.request_id,
       generation.worker_id,
       generation.generation IS NOT NULL AS is_stored,
       generation.faulted AS is_faulted,
       generation.fake AS is_fake,
       generation.over_capacity_at_assignment AS is_over_capacity,
       generation.job_ttl AS lease_seconds,
       generation.assigned_model,
       generation.model,
       generation.created AS assigned_at,
       request.is_chat,
       request.chat_extras::text AS extras,
       request.chat_conformance AS conformance,
       request.max_length,
       request.shared_key_id,
       char_length(request.prompt) AS prompt_characters,
       requester.id AS requester_account,
       worker.name AS worker_name,
       worker.bridge_agent,
       worker.user_id AS owner_id,
       owner.is_trusted AS is_owner_trusted,
       owner_account.id AS owner_account,
       owner_escrow.id AS owner_escrow,
       submitter.user_id AS submitter_id
  FROM processing_gens AS generation
  JOIN waiting_prompts AS request ON request.id = generation.request_id
  JOIN workers AS worker ON worker.id = generation.worker_id
  JOIN accounts AS requester ON requester.user_id = request.user_id AND requester.kind = 'balance'
  JOIN users AS owner ON owner.id = worker.user_id
  JOIN accounts AS owner_account ON owner_account.user_id = worker.user_id AND owner_account.kind = 'balance'
  JOIN accounts AS owner_escrow ON owner_escrow.user_id = worker.user_id AND owner_escrow.kind = 'escrow'
  LEFT JOIN LATERAL (
           SELECT api_keys.user_id
             FROM api_keys
            WHERE api_keys.key_hash = ANY(%(key_hashes)s::char(64)[])
              AND api_keys.revoked_at IS NULL
            ORDER BY api_keys.id
            LIMIT 1
       ) AS submitter ON true
 WHERE generation.id = %(generation_id)s
