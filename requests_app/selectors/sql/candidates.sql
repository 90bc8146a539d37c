-- candidates: the requests a worker could take, best first, at most %(limit)s, with what the rules of matching ask of each.
-- `scopes` are the parts of the queue the worker may look into: of chat, each feature mask that waits for its model and that
-- it covers, found by jumping from one to the next; of text, each of its models and the empty one, for any model. The head
-- of each scope is read in queue order, and the heads are merged, so what needs more than the worker has is never touched,
-- however much waits ahead. What the worker's owner and its priority users wait for is a second branch, which goes first,
-- and the only one for a worker in maintenance (decision Q5).
-- Lengths, temperature and what is past its expiry are always judged here; trust, chosen workers, validated backends and
-- slowness only under %(apply_all)s, else they are left to be judged, and counted, one by one (decision Q2). A request of
-- which the worker got a fake job is never shown to it again.
-- Nothing is locked; the claim decides. Raw for the loose index scan and the merge. Served by queue_rows_in_order,
-- queue_rows_of_user, the primary key of waiting_prompts and the index on processing_gens.request_id.
WITH RECURSIVE masks AS (
    (
        SELECT feature_mask
          FROM queue_rows
         WHERE %(takes_chat)s
           AND is_chat
           AND model = %(chat_model)s
         ORDER BY feature_mask
         LIMIT 1
    )
    UNION ALL
    SELECT (
               SELECT queue_rows.feature_mask
                 FROM queue_rows
                WHERE queue_rows.is_chat
                  AND queue_rows.model = %(chat_model)s
                  AND queue_rows.feature_mask > masks.feature_mask
                ORDER BY queue_rows.feature_mask
                LIMIT 1
           )
      FROM masks
     WHERE masks.feature_mask IS NOT NULL
),
scopes AS MATERIALIZED (
    SELECT true AS is_chat,
           %(chat_model)s::varchar AS model,
           feature_mask,
           %(chat_max_length)s::integer AS max_length,
           %(chat_max_context_length)s::integer AS max_context_length
      FROM masks
     WHERE feature_mask & ~%(covered_mask)s::bigint = 0
     UNION ALL
    SELECT false,
           model,
           0,
           %(max_length)s,
           %(max_context_length)s
      FROM unnest(%(text_models)s::varchar[]) AS text (model)
),
heads AS (
    SELECT head.request_id, head.order_key, head.created, false AS is_first
      FROM scopes
     CROSS JOIN LATERAL (
               SELECT queue_rows.request_id, queue_rows.order_key, queue_rows.created
                 FROM queue_rows
                 JOIN waiting_prompts AS request ON request.id = queue_rows.request_id
                WHERE NOT %(own_only)s
                  AND queue_rows.is_chat = scopes.is_chat
                  AND queue_rows.model = scopes.model
                  AND queue_rows.feature_mask = scopes.feature_mask
                  AND queue_rows.max_length <= scopes.max_length
                  AND queue_rows.max_context_length <= scopes.max_context_length
                  AND coalesce(queue_rows.tools_temperature <= %(tools_max_temperature)s::double precision, true)
                  AND request.expiry > %(now)s
                  AND (
                          NOT %(apply_all)s
                       OR (
                                  (%(is_owner_trusted)s OR NOT request.trusted_workers)
                              AND (%(is_backend_validated)s OR NOT request.validated_backends)
                              AND (request.slow_workers OR NOT %(is_slow)s)
                              AND (
                                      cardinality(request.workers) = 0
                                   OR (%(worker_id)s = ANY(request.workers)) <> request.worker_blacklist
                                  )
                          )
                      )
                  AND NOT EXISTS (
                          SELECT 1
                            FROM processing_gens
                           WHERE processing_gens.request_id = request.id
                             AND processing_gens.worker_id = %(worker_id)s
                             AND processing_gens.fake
                      )
                ORDER BY queue_rows.order_key DESC, queue_rows.created, queue_rows.request_id
                LIMIT %(limit)s
           ) AS head
     UNION ALL
    SELECT first.request_id, first.order_key, first.created, true
      FROM (
               -- Once each: twenty models of one request would else be the whole page.
               SELECT DISTINCT queue_rows.request_id, queue_rows.order_key, queue_rows.created
                 FROM queue_rows
                 JOIN scopes
                   ON scopes.is_chat = queue_rows.is_chat
                  AND scopes.model = queue_rows.model
                  AND scopes.feature_mask = queue_rows.feature_mask
                  AND scopes.max_length >= queue_rows.max_length
                  AND scopes.max_context_length >= queue_rows.max_context_length
                 JOIN waiting_prompts AS request ON request.id = queue_rows.request_id
                WHERE queue_rows.user_id = ANY(%(first_users)s::bigint[])
                  AND coalesce(queue_rows.tools_temperature <= %(tools_max_temperature)s::double precision, true)
                  AND request.expiry > %(now)s
                  AND (
                          NOT %(apply_all)s
                       OR (
                                  (%(is_owner_trusted)s OR NOT request.trusted_workers)
                              AND (%(is_backend_validated)s OR NOT request.validated_backends)
                              AND (request.slow_workers OR NOT %(is_slow)s)
                              AND (
                                      cardinality(request.workers) = 0
                                   OR (%(worker_id)s = ANY(request.workers)) <> request.worker_blacklist
                                  )
                          )
                      )
                  AND NOT EXISTS (
                          SELECT 1
                            FROM processing_gens
                           WHERE processing_gens.request_id = request.id
                             AND processing_gens.worker_id = %(worker_id)s
                             AND processing_gens.fake
                      )
                ORDER BY queue_rows.order_key DESC, queue_rows.created, queue_rows.request_id
                LIMIT %(limit)s
           ) AS first
),
-- A text request of several models stands in several scopes, and one of a priority user in both branches.
best AS (
    SELECT request_id, order_key, created, bool_or(is_first) AS is_first
      FROM heads
     GROUP BY request_id, order_key, created
     ORDER BY is_first DESC, order_key DESC, created, request_id
     LIMIT %(limit)s
)
SELECT best.request_id,
       request.user_id,
       request.is_chat,
       request.models,
       request.feature_mask,
       request.max_length,
       request.max_context_length,
       request.chat_tools_temperature AS tools_temperature,
       request.workers,
       request.worker_blacklist,
       request.trusted_workers,
       request.validated_backends,
       request.slow_workers
  FROM best
  JOIN waiting_prompts AS request ON request.id = best.request_id
 ORDER BY best.is_first DESC, best.order_key DESC, best.created, best.request_id
