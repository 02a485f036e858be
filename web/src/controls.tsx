// SPDX-License-Identifier: Apache-2.0
// What several views have beside their own.

interface SearchProps {
  what: string; // is searched for, as the empty field says
  value: string;
  invalid?: boolean;
  onInput: (value: string) => void;
}

export function Search({ what, value, invalid, onInput }: SearchProps) {
  return (
    <label>
      search{" "}
      <input
        type="search"
        class="find"
        placeholder={what}
        value={value}
        aria-invalid={invalid}
        onInput={(e) => onInput(e.currentTarget.value)}
      />
    </label>
  );
}

interface MoreProps {
  all: number; // rows
  limit: number; // of them are shown
  onMore: (limit: number) => void;
}

// Below a long table; four times as many rows each time.
export function More({ all, limit, onMore }: MoreProps) {
  if (all <= limit) return null;
  return (
    <button type="button" onClick={() => onMore(limit * 4)}>
      {all - limit} more
    </button>
  );
}
