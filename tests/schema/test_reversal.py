"""Every migration of the project can be taken back, one at a time, and run again."""

from tests.schema.databases import Database

SCHEMA = """
SELECT 'column', attrelid::regclass || '.' || attname,
       concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid))
  FROM pg_attribute
  JOIN pg_class ON pg_class.oid = attrelid
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
 WHERE relkind = 'r' AND attnum > 0 AND NOT attisdropped AND relnamespace = 'public'::regnamespace
 UNION ALL
SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
 UNION ALL
SELECT 'index', indexrelid::regclass::text, concat_ws(' ', pg_get_indexdef(indexrelid), indisvalid)
  FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
 UNION ALL
SELECT 'trigger', tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
 UNION ALL
SELECT 'function', oid::regprocedure::text, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
 UNION ALL
SELECT 'storage', oid::regclass::text, reloptions::text
  FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
 UNION ALL
SELECT 'sequence', oid::regclass::text, relkind::text
  FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace
 ORDER BY 1, 2
"""


def test_every_migration_can_be_taken_back_and_run_again(empty: Database) -> None:
    migrations = empty.list_migrations()
    empty.migrate([("auth", "0012_alter_user_first_name_max_length")])
    states = [empty.fetch(SCHEMA)]
    for migration in migrations:
        empty.migrate([migration])
        states.append(empty.fetch(SCHEMA))

    for (app, name), before in zip(reversed(migrations), reversed(states[:-1]), strict=True):
        earlier = [other for other in migrations if other[0] == app and other < (app, name)]
        empty.migrate([earlier[-1] if earlier else (app, None)])
        assert empty.fetch(SCHEMA) == before, f"{app}.{name} leaves something behind when it is taken back."
    empty.migrate()

    assert len(migrations) >= 7
    assert len({str(state) for state in states}) == len(states)
    assert empty.fetch(SCHEMA) == states[-1]
