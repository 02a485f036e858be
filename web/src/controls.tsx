// SPDX-License-Identifier: Apache-2.0
// What several views have beside their own.
import { useState } from "preact/hooks";

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

// A table that is sorted by what one clicks on, at first by the largest of `first`.
export function useSort<Column extends string>(first: Column) {
  const [sort, setSort] = useState<Column>(first);
  const [down, setDown] = useState(true);
  const choose = (column: Column) => {
    setDown(column === sort ? !down : column !== "name");
    setSort(column);
  };
  return { sort, down, choose };
}

interface SortHeadProps<Column extends string> {
  column: Column;
  text: string;
  about?: string;
  by: ReturnType<typeof useSort<Column>>;
}

export function SortHead<Column extends string>({ column, text, about, by }: SortHeadProps<Column>) {
  const { sort, down, choose } = by;
  return (
    <th
      scope="col"
      title={about}
      aria-sort={column === sort ? (down ? "descending" : "ascending") : "none"}
    >
      <button type="button" onClick={() => choose(column)}>
        {text}
        {column === sort ? (down ? " ▾" : " ▴") : ""}
      </button>
    </th>
  );
}

// Below a flame graph, where calls had to be summed up: of less than how much.
export function Small({ least }: { least: string | 0 }) {
  if (!least) return null;
  return <p>Calls of less than {least} are summed up as "(small)", to keep this page small.</p>;
}

export function RowCount({ rows }: { rows: number }) {
  return (
    <output>
      {rows} {rows === 1 ? "row" : "rows"}
    </output>
  );
}

// Back from one row's stacks to those of all.
export function Everybody({ onPress }: { onPress: () => void }) {
  return (
    <button type="button" class="everybody" onClick={onPress}>
      of everybody
    </button>
  );
}

interface OpenerProps {
  name: string;
  open: boolean;
  onPress: () => void;
}

// The head of a row that has more to show.
export function Opener({ name, open, onPress }: OpenerProps) {
  return (
    <th scope="row">
      <button type="button" class="name" aria-expanded={open} onClick={onPress}>
        {name}
      </button>
    </th>
  );
}
