-- stored_text: a text request as it was submitted, and whether the key that asks is known and the one it was submitted
-- under. No row for another family's id. Raw for the key in the same round trip.
-- Served by the primary keys of waiting_prompts and shared_keys and the unique key of api_keys.
SELECT request.submitted_prompt,
       request.params::text AS params,
       request.models,
       request.jobs,
       request.max_length,
       request.max_context_length,
       request.workers,
       request.worker_blacklist,
       request.trusted_workers,
       request.validated_backends,
       request.slow_workers,
       key.api_key_id IS NOT NULL OR key.shared_key_id IS NOT NULL AS is_key_known,
       coalesce(request.api_key_id = key.api_key_id, false)
           OR coalesce(request.shared_key_id = key.shared_key_id, false) AS is_submitters_key
  FROM waiting_prompts AS request
  LEFT JOIN LATERAL (
           (
               SELECT id AS api_key_id, NULL::uuid AS shared_key_id
                 FROM api_keys
                WHERE key_hash = ANY(%(key_hashes)s::char(64)[])
                  AND revoked_at IS NULL
                ORDER BY id
                LIMIT 1
           )
           UNION ALL
           SELECT NULL, id
             FROM shared_keys
            WHERE id = %(shared_key_id)s::uuid
       ) AS key ON true
 WHERE request.id = %(request_id)s
   AND NOT request.is_chat
